// Prints the partition that Java's producer writes each key to. Keys come on standard input, one per line. Run from source:
// java -cp '<jars>/*' Partitions.java <brokers> <topic>
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

class Partitions {
  public static void main(String[] args) throws Exception {
    var settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    settings.put("key.serializer", StringSerializer.class.getName());
    settings.put("value.serializer", StringSerializer.class.getName());
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var output = new StringBuilder();
    try (var producer = new KafkaProducer<String, String>(settings)) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (String key = input.readLine(); key != null; key = input.readLine()) {
        sent.add(producer.send(new ProducerRecord<>(args[1], key, "")));
      }
      for (var one : sent) output.append(one.get().partition()).append('\n');
    }
    System.out.print(output);
  }
}
